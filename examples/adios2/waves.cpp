// An ADIOS2 program: waves, written step by step and read back. What makes it Brigade's are the
// engine's type and parameters, which may stand in ADIOS2's configuration file as well.
//
//     ./waves libBrigadeEngine.so waves.bp
#include <cmath>
#include <iostream>
#include <vector>

#include <adios2.h>

int main(int argc, char **argv)
{
    const size_t n = 1000, steps = 3;
    adios2::ADIOS adios;
    adios2::Params engine = {{"PluginName", "brigade"},
                             {"PluginLibrary", argc > 1 ? argv[1] : "libBrigadeEngine.so"},
                             {"File", argc > 2 ? argv[2] : "waves.bp"}};
    try {
        adios2::IO out = adios.DeclareIO("out");
        out.SetEngine("Plugin");
        out.SetParameters(engine);
        auto wave = out.DefineVariable<double>("wave", {n}, {0}, {n});
        auto time = out.DefineVariable<int>("time");
        out.DefineAttribute<std::string>("unit", "metre");
        adios2::Engine writer = out.Open(engine["File"], adios2::Mode::Write);
        std::vector<double> u(n);
        for (size_t step = 0; step < steps; step++) {
            for (size_t i = 0; i < n; i++)
                u[i] = std::sin(0.01 * double(i) + double(step));
            writer.BeginStep();
            writer.Put(wave, u.data());
            writer.Put(time, int(step));
            writer.EndStep(); // here the step is written, synced and there, whole
        }
        writer.Close();

        adios2::IO in = adios.DeclareIO("in");
        in.SetEngine("Plugin");
        in.SetParameters(engine);
        adios2::Engine reader = in.Open(engine["File"], adios2::Mode::Read);
        while (reader.BeginStep() == adios2::StepStatus::OK) {
            int step = -1;
            std::vector<double> part(10);
            auto found = in.InquireVariable<double>("wave");
            found.SetSelection({{100}, {part.size()}});
            reader.Get(found, part.data());
            reader.Get(in.InquireVariable<int>("time"), step, adios2::Mode::Sync);
            reader.EndStep(); // here all ranks read what they asked for
            std::cout << step << " " << part[0] - std::sin(1.0 + step) << " "
                      << in.InquireAttribute<std::string>("unit").Data()[0] << "\n";
        }
        reader.Close();
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
    return 0;
}
