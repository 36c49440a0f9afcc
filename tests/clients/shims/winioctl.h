/* Files are out of scope: no file becomes sparse. */
#ifndef CLIENTS_WINIOCTL_H
#define CLIENTS_WINIOCTL_H

#define FSCTL_SET_SPARSE 0x900c4
#define DeviceIoControl(handle, code, in, in_size, out, out_size, returned, overlapped) \
    ((void)(handle), (void)(code), *(returned) = 0, 1)

#endif
