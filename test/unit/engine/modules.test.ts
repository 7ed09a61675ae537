import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { registry } from "#engine/modules/registry.ts";
import { describeTable } from "#support/cases/describe.ts";
import { readTable } from "#support/cases/table.ts";
import { shellsOf } from "#support/shells.ts";

const folder = fileURLToPath(new URL("../../modules/", import.meta.url));

describe("the tables of modules", () => {
  for (const file of readdirSync(folder)) {
    const [name = "", load] = [...registry].find(([known]) => `${known.replaceAll(/[._]/g, "-")}.yaml` === file) ?? [];
    describe(name, () => {
      if (load === undefined) throw new Error(`test/modules/${file}: there is no such module`);
      const table = readTable(join(folder, file), `test/modules/${file}`);
      describeTable(load, table, shellsOf(file));
    });
  }
});
