// An ADIOS2 program of what Python's bindings cannot say:
//
//     adios2_driver chars | long ENGINE FILE
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <adios2.h>
#include <mpi.h>

static adios2::Params parameters;

static adios2::IO declare(adios2::ADIOS &adios, const std::string &name)
{
    adios2::IO io = adios.DeclareIO(name);
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

// An attribute that cannot be written, of rank 0 alone.
static void long_double(adios2::ADIOS &adios, int rank)
{
    adios2::IO out = declare(adios, "out");
    if (rank == 0)
        out.DefineAttribute<long double>("precise", 1.0L);
    write_step(out);
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
        if (what == "long")
            long_double(adios, rank);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        failed = 1;
    }
    MPI_Finalize();
    return failed;
}
