"""Texts: any Unicode text, and any file that holds one."""
