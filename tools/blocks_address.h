/* `blocks --address`: what is at an address. */
#ifndef TOOLS_BLOCKS_ADDRESS_H
#define TOOLS_BLOCKS_ADDRESS_H

#include "tools/load.h"

int blocks_address_run(const struct command_line *line, const struct load *load, uint64_t address);

#endif
