"""Reading textual LLVM IR: modules, functions, blocks, instructions, types, loops and debug locations."""
