// mocha's dot reporter, and beside it a file with the three counts, what failed and the seconds that each test file took, its
// hooks included: what several runs add up to is printed at the end.
const { writeFileSync } = require("node:fs");
const { relative } = require("node:path");
const { reporters } = require("mocha");

module.exports = class Counting extends reporters.Dot {
  constructor(runner, options) {
    super(runner, options);
    const output = options.reporterOptions && options.reporterOptions.output;
    const files = {};
    const failed = [];
    const add = ({ file, duration }) => {
      const name = file ? relative(process.cwd(), file) : "(none)";
      files[name] = (files[name] ?? 0) + (duration ?? 0) / 1000;
    };
    runner.on("test end", add);
    runner.on("hook end", add);
    runner.on("fail", (test, error) => failed.push(`${test.fullTitle()}: ${String(error.message).slice(0, 500)}`));
    runner.once("end", () => {
      const { passes, failures, pending, duration } = this.stats;
      const seconds = duration / 1000;
      if (output) writeFileSync(output, JSON.stringify({ passes, failures, pending, seconds, files, failed }));
    });
  }
};
