// An ADIOS2 program of what Python's bindings cannot say:
//
//     adios2_driver chars | texts | long | thrown | column ENGINE FILE
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <adios2.h>
#include <mpi.h>

static adios2::Params parameters;

static adios2::IO declare(adios2::ADIOS &adios, const std::string &name,
                          adios2::ArrayOrdering order = adios2::ArrayOrdering::Auto)
{
    adios2::IO io = adios.DeclareIO(name, order);
    io.SetEngine("Plugin");
    io.SetParameters(parameters);
    return io;
}

static void write_step(adios2::IO &io)
{
    adios2::Engine writer = io.Open("x", adios2::Mode::Write);
    writer.BeginStep();
    writer.EndStep();
    writer.Close();
}

// Numbers of eight bits beside characters, one and several; what they come back as is printed.
static void chars(adios2::ADIOS &adios)
{
    adios2::IO out = declare(adios, "out");
    const char several[] = {'a', 'b'};
    out.DefineAttribute<char>("char", 'x');
    out.DefineAttribute<char>("chars", several, 2);
    out.DefineAttribute<int8_t>("number", 7);
    write_step(out);
    adios2::IO in = declare(adios, "in");
    adios2::Engine reader = in.Open("x", adios2::Mode::Read);
    reader.BeginStep();
    for (const auto &found : in.AvailableAttributes()) {
        std::cout << found.first << " " << in.AttributeType(found.first);
        for (char c : in.InquireAttribute<char>(found.first).Data())
            std::cout << " " << c;
        std::cout << "\n";
    }
    reader.EndStep();
    reader.Close();
}

// Texts in UTF-8 and in Latin-1, one and several, beside bytes that are numbers; each that comes back
// as the text that it was is named.
static void texts(adios2::ADIOS &adios)
{
    const std::vector<std::string> names = {"latin", "utf-8", "empty", "cut", "several"};
    const std::vector<std::vector<std::string>> right = {
        {"\xb0\x43"}, {"\xc2\xb0\x43"}, {""}, {"\xe2\x82"}, {"m", "", "\xb5m", ""}};
    adios2::IO out = declare(adios, "out"), in = declare(adios, "in");
    for (size_t i = 0; i < names.size(); i++)
        if (right[i].size() == 1)
            out.DefineAttribute<std::string>(names[i], right[i][0]);
        else
            out.DefineAttribute<std::string>(names[i], right[i].data(), right[i].size());
    out.DefineAttribute<uint8_t>("number", 0xb0);
    write_step(out);
    adios2::Engine reader = in.Open("x", adios2::Mode::Read);
    reader.BeginStep();
    for (size_t i = 0; i < names.size(); i++)
        if (in.InquireAttribute<std::string>(names[i]).Data() == right[i])
            std::cout << names[i] << "\n";
    std::cout << in.AttributeType("number") << " of " << in.AvailableAttributes().size() << "\n";
    reader.EndStep();
    reader.Close();
}

// An attribute that cannot be written, of rank 0 alone.
static void long_double(adios2::ADIOS &adios, int rank)
{
    adios2::IO out = declare(adios, "out");
    if (rank == 0)
        out.DefineAttribute<long double>("precise", 1.0L);
    write_step(out);
}

// Rank 0 alone begins another step, and leaves it by an exception; what it leaves closes.
static void thrown(adios2::ADIOS &adios, int rank)
{
    struct closing {
        adios2::Engine writer;
        ~closing()
        {
            writer.Close();
        }
    };
    adios2::IO out = declare(adios, "out");
    closing it{out.Open("x", adios2::Mode::Write)};
    it.writer.BeginStep();
    it.writer.EndStep();
    if (rank == 0) {
        it.writer.BeginStep();
        throw std::runtime_error("thrown");
    }
}

// As Fortran has it: of a(3, 2) = [10 i + j] rank 0 puts rows 0 and 1, rank 1 the last; each prints
// rows 1 and 2 as it gets them, with all others and by itself.
static void column(adios2::ADIOS &adios, int rank)
{
    parameters["Order"] = "column";
    adios2::IO out = declare(adios, "out", adios2::ArrayOrdering::ColumnMajor);
    std::vector<int> mine = rank == 0 ? std::vector<int>{0, 10, 1, 11} : std::vector<int>{20, 21};
    auto a =
        out.DefineVariable<int>("a", {3, 2}, {rank == 0 ? 0u : 2u, 0}, {rank == 0 ? 2u : 1u, 2});
    adios2::Engine writer = out.Open("x", adios2::Mode::Write);
    writer.BeginStep();
    writer.Put(a, mine.data());
    writer.EndStep();
    writer.Close();
    adios2::IO in = declare(adios, "in", adios2::ArrayOrdering::ColumnMajor);
    adios2::Engine reader = in.Open("x", adios2::Mode::Read);
    reader.BeginStep();
    auto found = in.InquireVariable<int>("a");
    std::vector<int> together(4), alone(4);
    std::string said = std::to_string(found.Shape()[0]) + " " + std::to_string(found.Shape()[1]);
    found.SetSelection({{1, 0}, {2, 2}});
    reader.Get(found, together.data());
    reader.Get(found, alone.data(), adios2::Mode::Sync);
    reader.EndStep();
    reader.Close();
    for (const auto &values : {together, alone})
        for (int value : values)
            said += " " + std::to_string(value);
    std::cout << said + "\n";
}

int main(int argc, char **argv)
{
    int rank, failed = 0;
    if (argc != 4)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::string what = argv[1];
    parameters = {
        {"PluginName", "b"}, {"PluginLibrary", argv[2]}, {"File", argv[3]}, {"Ranks", "world"}};
    try {
        adios2::ADIOS adios;
        if (what == "chars")
            chars(adios);
        if (what == "texts")
            texts(adios);
        if (what == "long")
            long_double(adios, rank);
        if (what == "thrown")
            thrown(adios, rank);
        if (what == "column")
            column(adios, rank);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        failed = 1;
    }
    MPI_Finalize();
    return failed;
}
