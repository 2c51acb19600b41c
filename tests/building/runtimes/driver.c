/* Stands for NVIDIA's driver where there is none: the GPU's memory is the host's, copies happen at
   once. It checks what it is given as far as it can: contexts are pushed and popped in pairs, memory
   is allocated before it is used and freed once. Written after the CUDA Driver API reference. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64
static int count = 1, depth = 0, waits = 0, to_gpu = 0, to_host = 0, within = 0;
static size_t room = SIZE_MAX;
static struct { uint64_t at; size_t size; } held[MOST];

/* For the tests. */
void set_count(int n) { count = n; }
void set_room(size_t bytes) { room = bytes; }
int get_depth(void) { return depth; }
int get_waits(void) { return waits; }
int get_copies(int kind) { return kind == 0 ? to_gpu : kind == 1 ? to_host : within; }
int get_held(void) {
    int n = 0;
    for (int i = 0; i < MOST; i++) n += held[i].size != 0;
    return n;
}

static int known(uint64_t at, size_t size) {
    for (int i = 0; i < MOST; i++)
        if (held[i].size && at >= held[i].at && at + size <= held[i].at + held[i].size) return 1;
    return 0;
}

int cuInit(unsigned flags) { return flags ? 1 : 0; }
int cuDeviceGetCount(int *n) { *n = count; return 0; }
int cuDeviceGet(int *device, int index) {
    if (index < 0 || index >= count) return 101;
    *device = index;
    return 0;
}
int cuDeviceGetName(char *name, int length, int device) {
    strncpy(name, "Paper GPU", length);
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 8 : attribute == 76 ? 9 : 0;
    return 0;
}
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &depth; return 0; }
int cuCtxPushCurrent_v2(void *context) {
    if (context != &depth) return 201;
    depth++;
    return 0;
}
int cuCtxPopCurrent_v2(void **context) {
    if (depth == 0) return 201;
    depth--;
    *context = &depth;
    return 0;
}
int cuStreamCreate(void **stream, unsigned flags) {
    if (!depth || flags != 1) return 1;
    *stream = &waits;
    return 0;
}
int cuStreamSynchronize(void *stream) { waits++; return depth ? 0 : 201; }
int cuMemAlloc_v2(uint64_t *at, size_t size) {
    if (!depth) return 201;
    if (!size) return 1;
    if (size > room) return 2;
    for (int i = 0; i < MOST; i++)
        if (!held[i].size) {
            held[i].at = (uint64_t)aligned_alloc(256, (size + 255) / 256 * 256);
            held[i].size = size;
            *at = held[i].at;
            return 0;
        }
    return 2;
}
int cuMemFree_v2(uint64_t at) {
    if (!depth) return 201;
    for (int i = 0; i < MOST; i++)
        if (held[i].size && held[i].at == at) {
            free((void *)at);
            held[i].size = 0;
            return 0;
        }
    return 1;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
    if (!depth) return 201;
    if (!known(to, size)) return 1;
    memcpy((void *)to, from, size);
    to_gpu++;
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
    if (!depth) return 201;
    if (!known(from, size)) return 1;
    memcpy(to, (void *)from, size);
    to_host++;
    return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
    if (!depth) return 201;
    memcpy((void *)to, (void *)from, size);
    within++;
    return 0;
}
int cuGetErrorString(int status, const char **text) {
    *text = status == 2 ? "out of memory" : "invalid";
    return 0;
}
