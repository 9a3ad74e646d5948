// Settings of the unit tests: style sheets are read, not emptied, so that their colours are tested.
// The time-out only ends a test that hangs: a busy machine may suspend one for seconds.
export default { test: { css: true, testTimeout: 120_000, hookTimeout: 120_000 } };
