"""The v3 draft of May 2022 and its older dialect."""
