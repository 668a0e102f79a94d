// What an ADIOS2 program has and a file of named arrays has not, as it is told in the file: types,
// names of variables, several texts in one attribute. A part of brigade_adios2.cpp.
#ifndef BRG_ADIOS2_HPP
#define BRG_ADIOS2_HPP

#include <algorithm>
#include <complex>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <adios2/plugin/PluginEngineInterface.h>

#include <brigade/io.h>

namespace brigade {
constexpr const char *PUT = "adios2.put";   // the array of what was put
constexpr const char *RUN = "adios2.run";   // attribute: the run that wrote a step
constexpr const char *TYPE = "adios2.type"; // attribute of an array: its type, where io.h has none
constexpr const char *NAME = "adios2.name"; // attribute of an array: its variable's, if other
constexpr const char *CHAR = "adios2.char"; // attribute: the names of the others that are char
constexpr const char *BYTES = "adios2.bytes"; // and of those that are text, but not UTF-8

[[noreturn]] inline void fail(const std::string &what)
{
    throw std::runtime_error("Brigade: " + what);
}

inline void check(int code, const brg_error &err)
{
    if (code)
        fail(err.text);
}

template <class T> struct is_complex : std::false_type {
};
template <class T> struct is_complex<std::complex<T>> : std::true_type {
};

// The brg_type of T, or 0 where there is none (text, long double).
template <class T> constexpr brg_type type_of()
{
    if (std::is_same<T, float>::value)
        return BRG_FLOAT32;
    if (std::is_same<T, double>::value)
        return BRG_FLOAT64;
    if (is_complex<T>::value)
        return sizeof(T) == 8 ? BRG_COMPLEX64 : BRG_COMPLEX128;
    if (!std::is_integral<T>::value)
        return brg_type(0);
    int power = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return brg_type(BRG_INT8 + 2 * power + (std::is_signed<T>::value ? 0 : 1));
}

// The same of a type's name.
inline brg_type type_named(const std::string &type)
{
#define declare(T)                    \
    if (type == adios2::GetType<T>()) \
        return type_of<T>();
    ADIOS2_FOREACH_STDTYPE_1ARG(declare)
#undef declare
    return brg_type(0);
}

// Several texts are one, with NULs between them.
inline std::string joined(const std::vector<std::string> &texts)
{
    std::string all;
    for (size_t i = 0; i < texts.size(); i++)
        all += (i ? std::string(1, '\0') : "") + texts[i];
    return all;
}

inline std::vector<std::string> parted(const std::string &all)
{
    std::vector<std::string> texts;
    for (size_t from = 0; from <= all.size();) {
        size_t until = std::min(all.find('\0', from), all.size());
        texts.push_back(all.substr(from, until - from));
        from = until + 1;
    }
    return texts;
}

// How many bytes a UTF-8 character takes that begins with `lead`; 0 where none does.
inline size_t character_bytes(unsigned char lead)
{
    return lead < 0x80   ? 1
           : lead < 0xc2 ? 0
           : lead < 0xe0 ? 2
           : lead < 0xf0 ? 3
           : lead < 0xf5 ? 4
                         : 0;
}

// Only such text is text in a file: see brg_file_set_attribute.
inline bool is_utf8(const std::string &text)
{
    for (size_t at = 0, n; at < text.size(); at += n) {
        unsigned char lead = text[at], second = at + 1 < text.size() ? text[at + 1] : 0;
        n = character_bytes(lead);
        if (!n || n > text.size() - at || (lead == 0xe0 && second < 0xa0) ||
            (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
            (lead == 0xf4 && second > 0x8f))
            return false;
        for (size_t i = 1; i < n; i++)
            if ((text[at + i] & 0xc0) != 0x80)
                return false;
    }
    return true;
}

// The name of a variable's array: no slash at the front or the end, nor two together, as in
// openPMD's /data/0/x.
inline std::string array_name(const std::string &variable)
{
    std::string name;
    for (char c : variable)
        if (c != '/' || (!name.empty() && name.back() != '/'))
            name += c;
    if (!name.empty() && name.back() == '/')
        name.pop_back();
    return name;
}

// Two variables cannot be one array.
inline void check_names(const std::vector<std::string> &variables)
{
    std::map<std::string, std::string> seen;
    for (const std::string &name : variables) {
        auto found = seen.emplace(array_name(name), name);
        if (!found.second)
            fail("variables " + found.first->second + " and " + name +
                 " would be one array: " + found.first->first);
    }
}
} // namespace brigade

#endif
