"""`NodePath`: the location of a node, and what can be done with the node there."""

from zarrdask.hierarchy.change import erase_node, write_node
from zarrdask.hierarchy.create import check_creation, create_node, prefetched
from zarrdask.hierarchy.find import (
    find_node,
    has_document,
    implied_group,
    node_exists,
    not_found,
    read_node,
    version_stamp,
)
from zarrdask.hierarchy.members import child_nodes, member_names, walk_nodes
from zarrdask.hierarchy.path import StorePath
from zarrdask.hierarchy.resize import lock_node, stored_metadata, update_node


class NodePath(StorePath):
    """The location of a node, with the functions of this folder on a node as its methods."""

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

    # Changes
    prefetched = prefetched
    check_creation = check_creation
    create = create_node
    write = write_node
    erase = erase_node
    lock = lock_node
    update = update_node
