/* Can anything be injected into this program?  Uses tools/program_look.h. */
#include "tools/record_program.h"

#include "tools/program_look.h"

const char *record_program_bar(const char *program)
{
    struct program_facts facts;
    program_look(program, &facts);
    return program_bar(&facts);
}
