"""Operations of libraries as ops: the interface of a framework, and what all frameworks share."""
