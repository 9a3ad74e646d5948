"""Operations of frameworks as ops: modules, optimizers, data loaders, compilations."""
