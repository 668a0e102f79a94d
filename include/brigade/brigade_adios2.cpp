// An engine for ADIOS2 that writes and reads through libbrigade_io: many ranks, few writers,
// constant memory. ADIOS2 loads it as a plug-in; docs/how-to/adios2.md shows how.
//
// Each step is a file of named arrays, FILE.0, FILE.1 and so on, published whole by EndStep: a
// program that is killed leaves its last step whole, and any reader of such files reads it.
//
// What must stay true. ADIOS2 lets every rank put and get what it likes, when it likes; a call on a
// shared file is collective. So a put only notes the block (Deferred) or copies it (Sync,
// PerformPuts), and EndStep, which is collective, writes: first each variable that this IO knows,
// in the order of their names, which is the same on every rank; then further blocks. A get that
// cannot wait for EndStep reads alone, through a handle of this process.
//
// A variable that no rank has put in a step is in its file too, without bytes. Array 0 of a file,
// "adios2.put", has a 1 for each that was put, in the order of the arrays that follow it.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <adios2/plugin/PluginEngineInterface.h>

#include <brigade/brigade_adios2.hpp>
#include <brigade/io.h>

#if ADIOS2_PLUGIN_ENGINE_INTERFACE < 2
#error "ADIOS2 2.12 or later is needed: earlier ones have no interface of their own for plug-ins"
#endif

namespace brigade {
using adios2::Dims;
using adios2::Mode;
using adios2::StepStatus;

size_t product(const Dims &dims)
{
    size_t n = 1;
    for (size_t d : dims)
        n *= d;
    return n;
}

// A file that is closed where the program leaves it.
struct closer {
    void operator()(brg_file *f) const
    {
        brg_file_close(f, nullptr);
    }
};
using file = std::unique_ptr<brg_file, closer>;

// A part of a variable, in the program's memory or, once copied, in `own`.
struct block {
    std::string name;
    Dims start, count;
    const void *data;
    size_t bytes;
    std::vector<char> own;

    void copy()
    {
        if (own.empty() && bytes) {
            own.assign(static_cast<const char *>(data), static_cast<const char *>(data) + bytes);
            data = own.data();
        }
    }
};

struct wish {
    std::string name;
    Dims start, count;
    void *data;
};

class engine : public adios2::plugin::PluginEngineInterface {
  public:
    using PluginEngineInterface::PluginEngineInterface;

    void Init() override
    {
        adios2::Params given = m_IO.Parameters();
        if (given["File"].empty())
            fail("ADIOS2 does not tell a plug-in the name that is opened: give it as parameter "
                 "File of the engine");
        path = given["File"];
        hints = given["Hints"];
        world = second_of(given, "Ranks", "adios2", "world");
        by_column = second_of(given, "Order", "row", "column");
        if (m_OpenMode == Mode::ReadRandomAccess)
            fail("steps are read one after another: open with Mode::Read");
        std::random_device random;
        for (int i = 0; i < 4; i++)
            run += std::to_string(random()) + (i < 3 ? "-" : "");
        if (m_OpenMode == Mode::Append)
            while (open_step())
                now++;
        current.reset();
    }

    size_t CurrentStep() const override
    {
        return now;
    }

    StepStatus BeginStep(adios2::StepMode, const float) override
    {
        stepped = begun = true;
        if (m_OpenMode != Mode::Read)
            return StepStatus::OK;
        if (!open_step())
            return StepStatus::EndOfStream;
        define_variables();
        define_attributes();
        return StepStatus::OK;
    }

    void EndStep() override
    {
        if (m_OpenMode == Mode::Read) {
            for (const wish &w : wishes)
                read(current.get(), w);
            wishes.clear();
            alone.reset();
            brg_error err;
            check(brg_file_close(current.release(), &err), err);
        } else {
            begun = false; // tried once: who closes when it has failed does not try again
            write_step();
        }
        now++;
    }

    void PerformPuts() override
    {
        for (block &b : blocks)
            b.copy();
    }

    void PerformGets() override
    {
        for (const wish &w : wishes)
            read_alone(w);
        wishes.clear();
    }

    // As ADIOS2's own engines do: a program without steps has one, a step that was begun is ended,
    // and what is still to be got is got. Not of a program that an exception takes out of its step:
    // the step is not whole, and other ranks may be elsewhere.
    void DoClose(const int) override
    {
        bool thrown_out = std::uncaught_exceptions() > uncaught;
        if (m_OpenMode == Mode::Read) {
            if (!thrown_out)
                PerformGets();
        } else if (!stepped || (begun && !thrown_out)) {
            EndStep();
        }
    }

#define declare(T)                                                                              \
    void DoPutSync(adios2::Variable<T> v, const T *values) override                             \
    {                                                                                           \
        put(v, values, true);                                                                   \
    }                                                                                           \
    void DoPutDeferred(adios2::Variable<T> v, const T *values) override                         \
    {                                                                                           \
        put(v, values, false);                                                                  \
    }                                                                                           \
    void DoGetSync(adios2::Variable<T> v, T *values) override                                   \
    {                                                                                           \
        read_alone(get(v, values));                                                             \
    }                                                                                           \
    void DoGetDeferred(adios2::Variable<T> v, T *values) override                               \
    {                                                                                           \
        wishes.push_back(get(v, values));                                                       \
    }                                                                                           \
    void DoGetSync(adios2::Variable<T> v, T *values, const adios2::core::Selection &s) override \
    {                                                                                           \
        read_alone(get(v, values, s));                                                          \
    }                                                                                           \
    void DoGetDeferred(adios2::Variable<T> v, T *values, const adios2::core::Selection &s)      \
        override                                                                                \
    {                                                                                           \
        wishes.push_back(get(v, values, s));                                                    \
    }
    ADIOS2_FOREACH_STDTYPE_1ARG(declare)
#undef declare

#define declare(T)                                                                                 \
    void DoPut(adios2::Variable<T> v, typename adios2::Variable<T>::Span &, const bool, const T &) \
        override                                                                                   \
    {                                                                                              \
        fail("variable " + v.Name() + ": memory of the engine (Span) is not offered");             \
    }
    ADIOS2_FOREACH_PRIMITIVE_STDTYPE_1ARG(declare)
#undef declare

  private:
    std::string path, hints, run;
    bool world = false, by_column = false, stepped = false, begun = false;
    const int uncaught = std::uncaught_exceptions(); // when it was opened
    size_t now = 0;
    std::vector<block> blocks;
    std::vector<wish> wishes;
    file current, alone; // the step that is read: by all ranks, by this one

    // Of a parameter that is one of two words, and the first unless given.
    static bool second_of(adios2::Params &given, const std::string &name, const std::string &first,
                          const std::string &second)
    {
        const std::string &said = given[name];
        if (!said.empty() && said != first && said != second)
            fail("parameter " + name + "=" + said + ": it is " + first + " or " + second);
        return said == second;
    }

    // A file's arrays lie row by row. A program whose arrays lie column by column names the same
    // dimensions from the other end.
    template <class T> T turned(T dims) const
    {
        if (by_column)
            std::reverse(dims.begin(), dims.end());
        return dims;
    }

    std::vector<uint64_t> in_file(const Dims &dims) const
    {
        return turned(std::vector<uint64_t>(dims.begin(), dims.end()));
    }

    Dims in_program(const brg_array &array) const
    {
        return turned(Dims(array.shape, array.shape + array.ndims));
    }

    std::string step_path() const
    {
        return path + "." + std::to_string(now);
    }

    int open(unsigned flags, file &f, brg_error &err)
    {
        brg_file *opened = nullptr;
        std::string name = step_path();
        int code;
        if (world)
            code = brg_file_open_world(name.c_str(), flags, hints.c_str(), &opened, &err);
#if ADIOS2_USE_MPI
        else if (m_Comm != MPI_COMM_NULL)
            code = brg_file_open_handle(uintptr_t(m_Comm), name.c_str(), flags, hints.c_str(),
                                        &opened, &err);
#endif
        else
            code = brg_file_open_alone(name.c_str(), flags, hints.c_str(), &opened, &err);
        f.reset(opened);
        return code;
    }

    // ---- writing ----

    template <class T> void put(adios2::Variable<T> &v, const T *values, bool copied)
    {
        adios2::ShapeID shape = v.ShapeID();
        if (!type_of<T>())
            fail("variable " + v.Name() + ": elements of type " + v.Type() +
                 " are not written; text goes into an attribute");
        if (shape != adios2::ShapeID::GlobalArray && shape != adios2::ShapeID::GlobalValue)
            fail("variable " + v.Name() + ": give it a global shape, or none and no count");
        Dims count = shape == adios2::ShapeID::GlobalValue ? Dims() : v.Count();
        if (v.SelectionSize() != product(count))
            fail("variable " + v.Name() + ": a selection of several steps is not supported");
        block b{v.Name(), v.Start(), count, values, product(count) * sizeof(T), {}};
        blocks.push_back(std::move(b));
        if (copied || count.empty()) // a single value may be a temporary one, as in Python
            blocks.back().copy();
    }

    const block *first_of(const std::string &name) const
    {
        for (const block &b : blocks)
            if (b.name == name)
                return &b;
        return nullptr;
    }

    void write_step()
    {
        std::vector<std::string> names;
        for (const auto &found : m_IO.AvailableVariables(true))
            if (is_written(found.first))
                names.push_back(found.first);
        check_names(names);
        file f;
        brg_error err;
        check(open(BRG_WRITE | BRG_CREATE, f, err), err);
        write_put(f.get(), names);
        for (const std::string &name : names)
            write_block(f.get(), name, first_of(name));
        for (const block &b : blocks)
            if (&b != first_of(b.name))
                write_block(f.get(), b.name, &b);
        write_attribute(f.get(), nullptr, RUN, BRG_TEXT, run.size(), run.data());
        write_attributes(f.get());
        check(brg_file_commit(f.get(), &err), err);
        check(brg_file_close(f.release(), &err), err);
        blocks.clear();
    }

    bool is_written(const std::string &name)
    {
        adios2::ShapeID shape = m_IO.InquireVariable(name).ShapeID();
        return type_named(m_IO.VariableType(name)) &&
               (shape == adios2::ShapeID::GlobalArray || shape == adios2::ShapeID::GlobalValue);
    }

    // The ones of this rank, run by run; at least one call, which defines the array.
    void write_put(brg_file *f, const std::vector<std::string> &names)
    {
        uint64_t n = names.size() ? names.size() : 1, at = 0;
        std::vector<uint8_t> ones(n, 1);
        bool defined = false;
        brg_error err;
        while (at < names.size() || !defined) {
            while (at < names.size() && !first_of(names[at]))
                at++;
            uint64_t count = 0;
            while (at + count < names.size() && first_of(names[at + count]))
                count++;
            uint64_t start = count ? at : 0;
            if (count || !defined)
                check(brg_file_write_array(f, PUT, BRG_UINT8, 1, &n, &start, &count, nullptr,
                                           ones.data(), &err),
                      err);
            defined = true;
            at += count;
        }
    }

    void write_block(brg_file *f, const std::string &name, const block *b)
    {
        adios2::VariableNT v = m_IO.InquireVariable(name);
        std::string type = m_IO.VariableType(name);
        std::vector<uint64_t> shape = in_file(v.Shape());
        std::vector<uint64_t> none(shape.size(), 0);
        std::vector<uint64_t> start = b && shape.size() ? in_file(b->start) : none;
        std::vector<uint64_t> count = b && shape.size() ? in_file(b->count) : none;
        std::string array = array_name(name);
        brg_error err;
        check(brg_file_write_array(f, array.c_str(), type_named(type), int(shape.size()),
                                   shape.data(), start.data(), count.data(), nullptr,
                                   b ? b->data : nullptr, &err),
              err);
        if (type == "char")
            write_attribute(f, array.c_str(), TYPE, BRG_TEXT, type.size(), type.data());
        if (array != name)
            write_attribute(f, array.c_str(), NAME, BRG_TEXT, name.size(), name.data());
    }

    static void write_attribute(brg_file *f, const char *array, const std::string &name,
                                brg_type type, size_t n, const void *values)
    {
        brg_error err;
        check(brg_file_set_attribute(f, array, name.c_str(), type, n, values, &err), err);
    }

    // Returns whether they are text in the file, too.
    static bool write_texts(brg_file *f, const std::string &name,
                            const std::vector<std::string> &texts)
    {
        std::string all = joined(texts);
        bool is_text = is_utf8(all);
        write_attribute(f, nullptr, name, is_text ? BRG_TEXT : BRG_UINT8, all.size(), all.data());
        return is_text;
    }

    // Those of rank 0 are the file's.
    void write_attributes(brg_file *f)
    {
        std::vector<std::string> chars, bytes;
        for (const auto &found : m_IO.AvailableAttributes()) {
            const std::string &name = found.first, type = m_IO.AttributeType(name);
            if (type == adios2::GetType<char>())
                chars.push_back(name);
            if (type == adios2::GetType<std::string>()) {
                if (!write_texts(f, name, m_IO.InquireAttribute<std::string>(name).Data()))
                    bytes.push_back(name);
            }
#define declare(T)                                                                     \
    else if (type == adios2::GetType<T>() && type_of<T>())                             \
    {                                                                                  \
        std::vector<T> values = m_IO.InquireAttribute<T>(name).Data();                 \
        write_attribute(f, nullptr, name, type_of<T>(), values.size(), values.data()); \
    }
            ADIOS2_FOREACH_PRIMITIVE_STDTYPE_1ARG(declare)
#undef declare
            else
            {
                // No type: a failure that the other ranks hear, who may not have the attribute.
                brg_file_set_attribute(f, nullptr, name.c_str(), brg_type(0), 0, nullptr, nullptr);
                fail("attribute " + name + ": elements of type " + type + " are not written");
            }
        }
        if (!chars.empty())
            write_texts(f, CHAR, chars);
        if (!bytes.empty())
            write_texts(f, BYTES, bytes);
    }

    // ---- reading ----

    // Opens step `now`; false where there is none of this run. Files of an earlier, longer run may
    // lie behind the last step.
    bool open_step()
    {
        brg_error err;
        int code = open(BRG_READ, current, err);
        if (code == -ENOENT)
            return false;
        check(code, err);
        brg_type type;
        size_t n;
        const void *text;
        check(brg_file_get_attribute(current.get(), nullptr, RUN, &type, &n, &text, &err), err);
        std::string found(static_cast<const char *>(text), n);
        if (now == 0)
            run = found;
        return found == run;
    }

    void define_variables()
    {
        brg_array put, array;
        brg_error err;
        check(brg_file_find_array(current.get(), PUT, &put, &err), err);
        std::vector<uint8_t> was_put(put.shape[0]);
        uint64_t zero = 0;
        check(brg_file_read_array(current.get(), PUT, &zero, put.shape, nullptr, was_put.data(),
                                  &err),
              err);
        for (size_t i = 1; brg_file_array_at(current.get(), i, &array) == 0; i++)
            if (was_put.at(i - 1))
                define_variable(array);
            else
                m_IO.RemoveVariable(variable_name(array));
    }

    // Text of the step or of an array; or what is to stand for it where there is none.
    std::string text(const char *array, const char *name, const std::string &otherwise) const
    {
        brg_type type;
        size_t n;
        const void *values;
        int code = brg_file_get_attribute(current.get(), array, name, &type, &n, &values, nullptr);
        return code ? otherwise : std::string(static_cast<const char *>(values), n);
    }

    std::string variable_name(const brg_array &array) const
    {
        return text(array.name, NAME, array.name);
    }

    void define_variable(const brg_array &array)
    {
        bool is_char = text(array.name, TYPE, "") == "char";
#define declare(T)                                                             \
    if (type_of<T>() == array.type && is_char == std::is_same<T, char>::value) \
        return define<T>(array);
        ADIOS2_FOREACH_PRIMITIVE_STDTYPE_1ARG(declare)
#undef declare
    }

    template <class T> void define(const brg_array &array)
    {
        Dims shape = in_program(array), zeros(shape.size(), 0);
        std::string name = variable_name(array);
        adios2::Variable<T> v = m_IO.InquireVariable<T>(name);
        if (!v) {
            m_IO.DefineVariable<T>(name, shape, zeros, shape);
        } else if (shape.size()) { // what was selected belongs to the step before
            v.SetShape(shape);
            v.SetSelection({zeros, shape});
        }
    }

    void define_attributes()
    {
        std::vector<std::string> chars = parted(text(nullptr, CHAR, ""));
        std::vector<std::string> bytes = parted(text(nullptr, BYTES, ""));
        for (size_t i = 0; i < brg_file_attribute_count(current.get(), nullptr); i++) {
            std::string name = brg_file_attribute_name(current.get(), nullptr, i);
            brg_error err;
            brg_type type;
            size_t n;
            const void *values;
            check(brg_file_get_attribute(current.get(), nullptr, name.c_str(), &type, &n, &values,
                                         &err),
                  err);
            m_IO.RemoveAttribute(name);
            if (name == RUN || name == CHAR || name == BYTES)
                continue;
            bool is_char = is_among(chars, name);
            if (type == BRG_TEXT || is_among(bytes, name))
                define_texts(name, parted({static_cast<const char *>(values), n}));
#define declare(T)                                                            \
    else if (type == type_of<T>() && is_char == std::is_same<T, char>::value) \
        define_numbers(name, static_cast<const T *>(values), n);
            ADIOS2_FOREACH_PRIMITIVE_STDTYPE_1ARG(declare)
#undef declare
        }
    }

    static bool is_among(const std::vector<std::string> &names, const std::string &name)
    {
        return std::find(names.begin(), names.end(), name) != names.end();
    }

    void define_texts(const std::string &name, const std::vector<std::string> &texts)
    {
        if (texts.size() == 1)
            m_IO.DefineAttribute<std::string>(name, texts[0]);
        else
            m_IO.DefineAttribute<std::string>(name, texts.data(), texts.size());
    }

    template <class T> void define_numbers(const std::string &name, const T *values, size_t n)
    {
        if (n == 1)
            m_IO.DefineAttribute<T>(name, *values);
        else
            m_IO.DefineAttribute<T>(name, values, n);
    }

    template <class T> wish get(adios2::Variable<T> &v, T *values)
    {
        if (v.ShapeID() == adios2::ShapeID::GlobalValue)
            return {v.Name(), {}, {}, values};
        if (v.SelectionSize() != product(v.Count()))
            fail("variable " + v.Name() + ": a selection of several steps is not supported");
        return {v.Name(), v.Start(), v.Count(), values};
    }

    template <class T>
    wish get(adios2::Variable<T> &v, T *values, const adios2::core::Selection &selection)
    {
        Dims shape = v.Shape();
        if (selection.HasMemorySelection() || selection.HasBlockSelection())
            fail("variable " + v.Name() + ": a selection is a box of the global array here");
        if (selection.GetSelectionType() == adios2::SelectionType::BoundingBox)
            return {v.Name(), selection.GetStart(), selection.GetCount(), values};
        return {v.Name(), Dims(shape.size(), 0), shape, values};
    }

    void read(brg_file *f, const wish &w)
    {
        brg_error err;
        std::vector<uint64_t> start = in_file(w.start), count = in_file(w.count);
        check(brg_file_read_array(f, array_name(w.name).c_str(), start.data(), count.data(),
                                  nullptr, w.data, &err),
              err);
    }

    void read_alone(const wish &w)
    {
        brg_file *opened = nullptr;
        brg_error err;
        if (!current)
            fail("variable " + w.name + ": read it between BeginStep and EndStep");
        if (!alone) {
            check(brg_file_open_alone(step_path().c_str(), BRG_READ, nullptr, &opened, &err), err);
            alone.reset(opened);
        }
        read(alone.get(), w);
    }
};
} // namespace brigade

extern "C" {
#if ADIOS2_USE_MPI
BRG_API adios2::plugin::PluginEngineInterface *EngineCreate(adios2::IO io, const std::string &name,
                                                            const adios2::Mode mode, MPI_Comm comm)
{
    return new brigade::engine(io, name, mode, comm);
}
#else
BRG_API adios2::plugin::PluginEngineInterface *EngineCreate(adios2::IO io, const std::string &name,
                                                            const adios2::Mode mode)
{
    return new brigade::engine(io, name, mode);
}
#endif

BRG_API void EngineDestroy(adios2::plugin::PluginEngineInterface *engine)
{
    delete engine;
}
}
