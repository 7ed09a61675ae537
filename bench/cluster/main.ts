import { benchWrites } from "./api.ts";
import { printFigures, type Figure } from "./figures.ts";
import { benchAgents } from "./agents.ts";
import { benchIdle } from "./idle.ts";
import { benchJoin } from "./join.ts";
import { benchMerge } from "./merge.ts";
import { benchSize } from "./size.ts";
import { benchVisible } from "./visible.ts";

const parts: Readonly<Record<string, () => Promise<readonly Figure[]> | readonly Figure[]>> = {
  writes: () => benchWrites(3000),
  idle: () => benchIdle(60),
  agents: () => benchAgents(1000, 60),
  visible: benchVisible,
  join: benchJoin,
  merge: benchMerge,
  size: () => benchSize(sizes.length > 0 ? sizes.map(Number) : [200, 1000, 3000, 10_000]),
};
const [
  only = Object.keys(parts)
    .filter((name) => name !== "size")
    .join(","),
  ...sizes
] = process.argv.slice(2);
for (const name of only.split(",")) {
  const bench = parts[name];
  if (!bench) throw new Error(`${name} is none of ${Object.keys(parts).join(", ")}`);
  printFigures(await bench());
}
