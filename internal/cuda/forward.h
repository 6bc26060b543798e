#ifndef GDB_FORWARD_H
#define GDB_FORWARD_H
/* Each loads its library once and returns why that failed, or an empty string. cuBLAS needs the
 * driver to be loaded. */
const char *gdb_load_driver(void);
const char *gdb_load_blas(void);
#endif
