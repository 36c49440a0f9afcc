/* No guard, as interlock/guid.h. */
#include <interlock/guid.h>
