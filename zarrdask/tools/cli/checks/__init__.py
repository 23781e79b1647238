"""The commands that examine what is stored: ``verify``, ``inventory``, ``repair``, ``diff``, ..."""
