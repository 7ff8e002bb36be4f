/* Linux's header, after the struct timespec that IREE takes from it: glibc's other headers have declared it by then, musl's have not. */
#include <time.h>
#include_next <linux/futex.h>
