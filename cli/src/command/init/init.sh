#!/bin/sh
# Sets up a fresh work tree of this project: installs what it needs, and shows how to run it.
# Longhaul runs it in every work tree before an agent starts; it may run more than once.
set -eu
