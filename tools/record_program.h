/*
 * Can anything be injected into this program?  The dynamic linker does it, so not into a program without one, of another
 * machine's word size, or with more rights than its user.  Looks at the file only.
 */
#ifndef TOOLS_RECORD_PROGRAM_H
#define TOOLS_RECORD_PROGRAM_H

/* Why a program, named as execvp takes it, cannot be recorded; NULL if nothing speaks against it, or nothing is known. */
const char *record_program_bar(const char *program);

#endif
