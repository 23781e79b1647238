"""Manifests of the stored objects of a node, and stores that read the listed versions."""
