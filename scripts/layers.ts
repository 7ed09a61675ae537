import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Checks the layers with dependency-cruiser, and checks that the tool saw every module: without a TypeScript that it can
 * load, dependency-cruiser reads no module and reports no violation. The tool must find the planted violations, a circle
 * of mere types among them. The violations are planted in a copy, since other checks read the tree at the same time.
 */
const root = join(import.meta.dirname, "..");

interface Report {
  readonly modules: readonly { readonly source: string }[];
  readonly summary: {
    readonly violations: readonly {
      readonly rule: { name: string; severity: string };
      readonly from: string;
      readonly to: string;
      readonly comment?: string;
    }[];
  };
}

function cruise(): Report {
  const args = ["--config", ".dependency-cruiser.cjs", "--output-type", "json", "src"];
  try {
    const text = execFileSync(join(root, "node_modules/.bin/depcruise"), args, {
      cwd: copy,
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
    return JSON.parse(text) as Report;
  } catch (error) {
    // dependency-cruiser exits with the number of violations, and the report is on stdout even then.
    return JSON.parse((error as { stdout: string }).stdout) as Report;
  }
}

const copy = realpathSync(mkdtempSync(join(tmpdir(), "kcore-layers-")));
for (const name of ["src", "package.json", "tsconfig.json", ".dependency-cruiser.cjs"])
  cpSync(join(root, name), join(copy, name), { recursive: true });
symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
const planted = join(copy, "src/tui/planted");
mkdirSync(planted);
writeFileSync(
  join(planted, "violation.ts"),
  `import { openLocal } from "#engine/transport/local-host.ts";\nimport ssh2 from "ssh2";\nimport { spawn } from "node:child_process";\nexport { openLocal, ssh2, spawn };\n`,
);
writeFileSync(join(planted, "one.ts"), `import type { Other } from "./other.ts";\nexport type One = Other[];\n`);
writeFileSync(join(planted, "other.ts"), `import type { One } from "./one.ts";\nexport type Other = One[];\n`);
mkdirSync(join(copy, "src/cli/terminal/planted"));
writeFileSync(
  join(copy, "src/cli/terminal/planted/violation.ts"),
  `import { Command } from "commander";\nimport { collect } from "../../options.ts";\nexport { Command, collect };\n`,
);
for (const [own, other] of [
  ["one", "two"],
  ["two", "one"],
]) {
  mkdirSync(join(copy, `src/cli/planted/${own}`), { recursive: true });
  writeFileSync(join(copy, `src/cli/planted/${own}/base.ts`), `export type ${own}Base = string;\n`);
  writeFileSync(
    join(copy, `src/cli/planted/${own}/user.ts`),
    `import type { ${other}Base } from "../${other}/base.ts";\nexport type ${own}User = ${other}Base[];\n`,
  );
}
let report: Report;
try {
  report = cruise();
} finally {
  rmSync(copy, { recursive: true, force: true });
}

const problems: string[] = [];
const isPlanted = (path: string): boolean => path.includes("/planted/");
const seen = new Set(report.modules.map(({ source }) => source));
for (const file of globSync("src/**/*.ts", { cwd: root }))
  if (!file.endsWith(".d.ts") && !seen.has(file)) problems.push(`${file} was not seen`);
for (const rule of [
  "tui-knows-events-only",
  "home-of-ssh2",
  "programs-are-run-in-one-place",
  "no-circles",
  "cli-work-knows-no-argv",
  "cli-print-knows-no-work",
  "cli-folders-have-no-circle",
  "commander-reads-argv",
])
  if (!report.summary.violations.some((violation) => violation.rule.name === rule && isPlanted(violation.from)))
    problems.push(`the violation planted for ${rule} was not found`);
for (const { rule, from, to, comment } of report.summary.violations)
  if (rule.severity === "error" && !isPlanted(from))
    problems.push(`${from} → ${to}: ${rule.name}${comment ? ` (${comment})` : ""}`);

if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`layers: ${seen.size} modules, no violation`);
