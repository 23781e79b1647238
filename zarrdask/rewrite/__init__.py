"""Rechunking, copying and converting stored arrays."""
