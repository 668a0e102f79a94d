/* See array_index.h. */
#include "io/array_index.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"

static const char magic[8] = "\x89"
                             "BRGARR\n"; /* not text: shows a transfer that changes line ends */

enum {
    VERSION = 1,
    LITTLE = 1,
    BIG = 2,
    TAG_ARRAY = 1,
    TAG_ATTRIBUTE = 2, /* of the array before it; of the file where there is none */
    RECORD_BYTES = 8,  /* in front of a payload */
    ARRAY_BYTES = 16,  /* of an array's payload, before the shape */
    ATTRIBUTE_BYTES = 16
};

uint32_t array_checksum(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint32_t table[256], crc = ~0u;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
    for (size_t i = 0; i < bytes; i++)
        crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xff];
    return ~crc;
}

static void put32(char *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof value);
}

static void put64(char *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof value);
}

static uint32_t get32(const char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

static uint64_t get64(const char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + 7) & ~(uint64_t)7;
}

static uint64_t payload_of_array(const brg_array *a)
{
    return ARRAY_BYTES + 8 * (uint64_t)a->ndims + strlen(a->name);
}

static uint64_t payload_of_attribute(const struct io_attribute *a)
{
    return ATTRIBUTE_BYTES + a->count * brg_type_bytes(a->type) + strlen(a->name);
}

static uint64_t bytes_of_attributes(const struct io_attributes *list)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->n; i++)
        bytes += RECORD_BYTES + padded(payload_of_attribute(&list->list[i]));
    return bytes;
}

uint64_t array_index_bytes(const struct array_table *t)
{
    uint64_t bytes = bytes_of_attributes(&t->attributes);
    for (size_t i = 0; i < t->n; i++)
        bytes += RECORD_BYTES + padded(payload_of_array(&t->arrays[i].is)) +
                 bytes_of_attributes(&t->arrays[i].attributes);
    return bytes;
}

/* A record with its payload zeroed. Returns where the payload begins; *at moves behind it. */
static char *begin(char **at, uint32_t tag, uint64_t bytes)
{
    char *payload = *at + RECORD_BYTES;
    put32(*at, tag);
    put32(*at + 4, (uint32_t)bytes);
    memset(payload, 0, padded(bytes));
    *at = payload + padded(bytes);
    return payload;
}

static void pack_attributes(const struct io_attributes *list, char **at)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct io_attribute *a = &list->list[i];
        size_t values = a->count * brg_type_bytes(a->type);
        char *payload = begin(at, TAG_ATTRIBUTE, payload_of_attribute(a));
        put32(payload, (uint32_t)a->type);
        put32(payload + 4, (uint32_t)strlen(a->name));
        put64(payload + 8, a->count);
        memcpy(payload + ATTRIBUTE_BYTES, a->values, values);
        memcpy(payload + ATTRIBUTE_BYTES + values, a->name, strlen(a->name));
    }
}

void array_index_pack(const struct array_table *t, char *buf)
{
    pack_attributes(&t->attributes, &buf);
    for (size_t i = 0; i < t->n; i++) {
        const brg_array *a = &t->arrays[i].is;
        char *payload = begin(&buf, TAG_ARRAY, payload_of_array(a));
        put64(payload, a->offset);
        put32(payload + 8, (uint32_t)a->type);
        put32(payload + 12, (uint32_t)a->ndims);
        for (int d = 0; d < a->ndims; d++)
            put64(payload + ARRAY_BYTES + 8 * d, a->shape[d]);
        memcpy(payload + ARRAY_BYTES + 8 * a->ndims, a->name, strlen(a->name));
        pack_attributes(&t->arrays[i].attributes, &buf);
    }
}

void array_header_pack(char *buf, uint64_t offset, const void *index, uint64_t bytes)
{
    memset(buf, 0, ARRAY_HEADER_BYTES);
    memcpy(buf, magic, sizeof magic);
    put32(buf + 8, VERSION);
    put32(buf + 12, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? LITTLE : BIG);
    put64(buf + 16, offset);
    put64(buf + 24, bytes);
    put32(buf + 32, array_checksum(index, bytes));
    put32(buf + 60, array_checksum(buf, 60));
}

int array_header_unpack(const char *buf, size_t n, uint64_t file_bytes, struct array_header *header,
                        struct brg_error *err)
{
    if (n < sizeof magic || memcmp(buf, magic, sizeof magic))
        return 0;
    if (n < ARRAY_HEADER_BYTES || get32(buf + 60) != array_checksum(buf, 60))
        return brg_error_set(err, -EBADMSG, "the header of its arrays is damaged");
    if (get32(buf + 8) != VERSION)
        return brg_error_set(err, -EOPNOTSUPP, "its arrays are of format %u; this Brigade knows %d",
                             get32(buf + 8), VERSION);
    header->order = get32(buf + 12);
    header->offset = get64(buf + 16);
    header->bytes = get64(buf + 24);
    header->checksum = get32(buf + 32);
    if (header->bytes > ARRAY_INDEX_MOST || header->offset > file_bytes ||
        header->bytes > file_bytes - header->offset || header->order < LITTLE ||
        header->order > BIG)
        return brg_error_set(err, -EBADMSG,
                             "the index of its arrays (%llu bytes at %llu) does not lie in the "
                             "file's %llu",
                             (unsigned long long)header->bytes, (unsigned long long)header->offset,
                             (unsigned long long)file_bytes);
    return 1;
}

static int unpack_array(struct array_table *t, const char *p, uint32_t bytes, struct brg_error *err)
{
    uint64_t shape[BRG_MAX_DIMS], at;
    uint32_t ndims = bytes >= ARRAY_BYTES ? get32(p + 12) : UINT32_MAX;
    if (ndims > BRG_MAX_DIMS || bytes < ARRAY_BYTES + 8 * ndims)
        return -EBADMSG;
    at = get64(p);
    for (uint32_t d = 0; d < ndims; d++)
        shape[d] = get64(p + ARRAY_BYTES + 8 * d);
    return array_table_add(t, p + ARRAY_BYTES + 8 * ndims, bytes - ARRAY_BYTES - 8 * ndims,
                           (brg_type)get32(p + 8), (int)ndims, shape, &at, err);
}

static int unpack_attribute(struct array_table *t, const char *p, uint32_t bytes,
                            struct brg_error *err)
{
    if (bytes < ATTRIBUTE_BYTES)
        return -EBADMSG;
    uint32_t type = get32(p), name = get32(p + 4);
    uint64_t count = get64(p + 8), unit = brg_type_bytes((brg_type)type), values;
    if (!unit || __builtin_mul_overflow(count, unit, &values) || name > bytes - ATTRIBUTE_BYTES ||
        values != bytes - ATTRIBUTE_BYTES - name)
        return -EBADMSG;
    return array_table_set(t, (int64_t)t->n - 1, p + ATTRIBUTE_BYTES + values, name, (brg_type)type,
                           count, p + ATTRIBUTE_BYTES, err);
}

int array_index_unpack(struct array_table *t, const char *buf, const struct array_header *header,
                       struct brg_error *err)
{
    uint64_t at = 0;
    struct brg_error why = {.code = 0};
    if (array_checksum(buf, header->bytes) != header->checksum)
        return brg_error_set(err, -EBADMSG, "the index of its arrays is damaged");
    while (at < header->bytes) {
        uint64_t left = header->bytes - at;
        uint32_t tag = left >= RECORD_BYTES ? get32(buf + at) : 0;
        uint32_t bytes = left >= RECORD_BYTES ? get32(buf + at + 4) : 0;
        const char *payload = buf + at + RECORD_BYTES;
        int rc = left < RECORD_BYTES || padded(bytes) > left - RECORD_BYTES ? -EBADMSG : 0;
        if (!rc && tag == TAG_ARRAY)
            rc = unpack_array(t, payload, bytes, &why);
        else if (!rc && tag == TAG_ATTRIBUTE)
            rc = unpack_attribute(t, payload, bytes, &why);
        if (rc == -ENOMEM)
            return brg_error_set(err, rc, "no memory for the index of its arrays");
        if (rc)
            return brg_error_set(err, -EBADMSG,
                                 "the index of its arrays is damaged at byte %llu%s%s",
                                 (unsigned long long)at, why.code ? ": " : "", why.text);
        at += RECORD_BYTES + padded(bytes);
    }
    for (size_t i = 0; i < t->n; i++) /* the index may lie before arrays that were added later */
        if (t->arrays[i].bytes && t->arrays[i].is.offset < ARRAY_HEADER_BYTES)
            return brg_error_set(err, -EBADMSG,
                                 "the index of its arrays is damaged: array %.200s "
                                 "lies on the header",
                                 t->arrays[i].is.name);
    return 0;
}
