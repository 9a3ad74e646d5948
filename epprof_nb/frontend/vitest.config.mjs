// Settings of the unit tests: style sheets are read, not emptied, so that their colours are tested.
export default { test: { css: true } };
