/*
 * C++ names for people, by the C++ library's own demangler, which is loaded when first needed.  Without that library,
 * or for names over 64 KiB, names stay as they are.  Not thread safe.
 */
#ifndef SYMBOL_DEMANGLE_H
#define SYMBOL_DEMANGLE_H

#define DEMANGLE_LIMIT 65536u

/* name itself, or text that is valid until the next call. */
const char *demangle(const char *name);

#endif
