"""Manifests of the stored objects of a node, and stores that read what a manifest names."""
