#!/bin/sh
# Sets up a work tree of this project: installs its dependencies, and shows how to run it.
# Longhaul runs it in every work tree before an agent starts, and where work is merged before the gates are run there. So it
# runs more than once, and should be quick when there is nothing to do.
set -eu
