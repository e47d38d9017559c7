"""The codec of text: what comes next is learned while it is read, in whole numbers only.

kernel.py         the model and the coder, bit by bit: run by Python, or compiled by numba
tables.py         the tables of whole numbers that the model looks things up in
engine.py         the model made ready and primed; texts coded with it on either path
text_codec.py     the codec of archives: the model primed by a text
text_archives.py  texts, files and folders as items of archives
"""
