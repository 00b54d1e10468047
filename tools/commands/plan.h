// hotpack plan, as `hotpack` has it: options and help are its own, the work is hotpack-remat's.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// Registers the subcommand. `argv`: the program's, handed to hotpack-remat as it is. hotpack-remat replaces this
// process; where it is missing, one line says so and *exit_code is 2.
void AddStartedPlanCommand(CLI::App& app, char** argv, int* exit_code);

}  // namespace hotpack
