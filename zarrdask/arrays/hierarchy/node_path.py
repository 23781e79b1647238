"""`NodePath`: the location of a node, with the operations on the node there."""

from zarrdask.arrays.hierarchy.changes.append import append_values
from zarrdask.arrays.hierarchy.changes.change import changing, erase_node, write_node
from zarrdask.arrays.hierarchy.changes.journal import beside, is_begun, workspace
from zarrdask.arrays.hierarchy.changes.node_locks import exclusive, lease_key, lock_node
from zarrdask.arrays.hierarchy.changes.removal import remove_keys
from zarrdask.arrays.hierarchy.claim import claimed, discard_dead_claim
from zarrdask.arrays.hierarchy.consolidation import write_consolidated
from zarrdask.arrays.hierarchy.diagnose import why_missing
from zarrdask.arrays.hierarchy.draft import in_hierarchy_like, in_own_hierarchy
from zarrdask.arrays.hierarchy.erase import erase_elements
from zarrdask.arrays.hierarchy.find import (
    find_node,
    has_document,
    implied_group,
    node_exists,
    not_found,
    read_node,
    version_stamp,
)
from zarrdask.arrays.hierarchy.format_above import format_above, format_of_new
from zarrdask.arrays.hierarchy.members import (
    child_nodes,
    documents_below,
    expect_chosen,
    member_names,
    walk_nodes,
)
from zarrdask.arrays.hierarchy.node_creation import (
    check_creation,
    check_members,
    clear_members,
    create_members,
    create_node,
    is_in_draft,
    prefetched,
)
from zarrdask.arrays.hierarchy.path import StorePath, exists_error
from zarrdask.arrays.hierarchy.resize import (
    change_documents,
    discard_append,
    drop_leading,
    grow,
    refreshed,
    resize_array,
    snapshot,
    store_repaired,
    stored_metadata,
    update_node,
)
from zarrdask.arrays.hierarchy.stored_manifest import (
    begin_manifest,
    keep_manifest,
    lasting_entry,
    store_manifest,
    stored_manifest,
)


class NodePath(StorePath):
    """The location of a node: a store, and the node's path in it; the node need not exist.

    It is immutable, and pickles. Its methods are functions of the other modules of this folder,
    whose first argument is the node.
    """

    __slots__ = ()

    # Metadata
    find = find_node
    read = read_node
    exists = node_exists
    has_document = has_document
    implied_group = implied_group
    not_found = not_found
    why_missing = why_missing
    version_stamp = version_stamp
    stored_metadata = stored_metadata

    # Members of a group
    names = member_names
    children = child_nodes
    expect_chosen = expect_chosen
    walk = walk_nodes
    documents_below = documents_below

    # Manifests
    stored_manifest = stored_manifest
    store_manifest = store_manifest
    begin_manifest = begin_manifest
    keep_manifest = keep_manifest
    lasting_entry = lasting_entry

    # Creation
    format_above = format_above
    format_of_new = format_of_new
    is_in_draft = is_in_draft
    in_hierarchy_like = in_hierarchy_like
    in_own_hierarchy = in_own_hierarchy
    prefetched = prefetched
    check_creation = check_creation
    create = create_node
    create_members = create_members
    check_members = check_members
    claimed = claimed
    discard_dead_claim = discard_dead_claim
    clear_members = clear_members
    exists_error = exists_error
    is_begun = is_begun
    beside = beside
    workspace = workspace

    # Changes of an array
    append = append_values
    snapshot = snapshot
    discard_append = discard_append
    drop_leading = drop_leading
    erase_elements = erase_elements
    exclusive = exclusive
    lease_key = lease_key
    grow = grow
    refreshed = refreshed
    resize = resize_array
    store_repaired = store_repaired

    # Changes
    changing = changing
    change_documents = change_documents
    write = write_node
    erase = erase_node
    remove_keys = remove_keys
    consolidate = write_consolidated
    lock = lock_node
    update = update_node
