// mocha's dot reporter, and beside it the three counts in a file: what several runs add up to is printed at the end.
const { writeFileSync } = require("node:fs");
const { reporters } = require("mocha");

module.exports = class Counting extends reporters.Dot {
  constructor(runner, options) {
    super(runner, options);
    const file = options.reporterOptions && options.reporterOptions.output;
    runner.once("end", () => {
      const { passes, failures, pending } = this.stats;
      if (file) writeFileSync(file, `${passes} ${failures} ${pending}\n`);
    });
  }
};
