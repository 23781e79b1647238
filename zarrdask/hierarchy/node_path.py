"""`NodePath`: the location of a node, and what can be done with the node there."""

from zarrdask.hierarchy.change import changing, erase_node, write_node
from zarrdask.hierarchy.create import (
    check_creation,
    check_members,
    clear_members,
    create_members,
    create_node,
    is_in_draft,
    prefetched,
    write_consolidated,
)
from zarrdask.hierarchy.find import (
    find_node,
    has_document,
    implied_group,
    node_exists,
    not_found,
    read_node,
    version_stamp,
)
from zarrdask.hierarchy.journal import is_begun
from zarrdask.hierarchy.members import child_nodes, member_names, walk_nodes
from zarrdask.hierarchy.path import StorePath, exists_error
from zarrdask.hierarchy.resize import grow, lock_node, stored_metadata, update_node


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
    version_stamp = version_stamp
    stored_metadata = stored_metadata

    # Members of a group
    names = member_names
    children = child_nodes
    walk = walk_nodes

    # Creation
    is_in_draft = is_in_draft
    prefetched = prefetched
    check_creation = check_creation
    create = create_node
    create_members = create_members
    check_members = check_members
    clear_members = clear_members
    exists_error = exists_error
    is_begun = is_begun

    # Changes
    changing = changing
    write = write_node
    erase = erase_node
    consolidate = write_consolidated
    grow = grow
    lock = lock_node
    update = update_node
