import { kcoreVersion } from "./process/version.ts";

// Only the parts that `--version` needs stand here; everything else is loaded when it is needed.
const [first] = process.argv.slice(2);
if (first === "--version" || first === "-V") {
  process.stdout.write(`${kcoreVersion()}\n`);
} else {
  const { looksLikeRun, startWarm } = await import("./process/warm-process.ts");
  const { hasTerminal } = await import("./process/drive-here.ts");
  const warm = looksLikeRun(process.argv.slice(2)) && hasTerminal() ? startWarm() : undefined;
  const { start } = await import("./start.ts");
  await start(process.argv, warm);
}
