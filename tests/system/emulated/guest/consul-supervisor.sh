#!/bin/sh
# The command of the product.
PYTHONPATH=/product exec python3 -P -m supervisor "$@"
