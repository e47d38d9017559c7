"""Make the environments of the peers beforehand: cd bench && python -m peers [NAME ...]"""

from . import main

main()
