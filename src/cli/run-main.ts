import { reportFailure } from "./terminal/report-failure.ts";
import { serveRun } from "./process/run-process.ts";

// The program of a run's own process: one file in the bundle, so that nothing is loaded while nodes wait.
try {
  // The record is closed and every view has read it, so an open handle must not keep the process.
  process.exit(await serveRun(process.argv.slice(2)));
} catch (error) {
  process.exitCode = reportFailure(error, { debug: true, json: false });
}
