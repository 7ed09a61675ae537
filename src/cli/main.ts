import { kcoreVersion } from "./process/version.ts";

// Only the parts that `--version` needs stand here; everything else is loaded when it is needed.
const [first] = process.argv.slice(2);
if (first === "--version" || first === "-V") {
  process.stdout.write(`${kcoreVersion()}\n`);
} else {
  const { looksLikeRun, startWarm } = await import("./process/warm-process.ts");
  const { hasTerminal } = await import("./terminal/has-terminal.ts");
  const isAlone = !hasTerminal();
  const warm = !isAlone && looksLikeRun(process.argv.slice(2)) ? startWarm() : undefined;
  const { start } = await import("./start.ts");
  await start(process.argv, { isAlone, warm });
}
