/* Counts every allocation of the process that loads it; see counted.py. Of one thread: it does not lock. */

#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static unsigned long count;

unsigned long bench_allocations(void) { return count; }

void *malloc(size_t size) { count++; return __libc_malloc(size); }
void *calloc(size_t members, size_t size) { count++; return __libc_calloc(members, size); }
void *realloc(void *old, size_t size) { count++; return __libc_realloc(old, size); }
