// Limits of the rows that statements get in a session, unless a test sets others.
#pragma once

enum {
  // Rows of one statement under one parent op. Its later executions share a row.
  kStatementRepeats = 1000,
  // Rows of statements of one thread. All further executions share rows.
  kStatementRows = 100000,
  // Pairs of a statement and a parent op, for all threads. Further ones are dropped.
  kStatementPairs = 1000000,
  // Statements that are recorded at once in calls of a function inside another call of it, and the
  // time after which one more is recorded.
  kRecursiveStatements = 1000,
  kNsPerRecursiveStatement = 2500,
};
