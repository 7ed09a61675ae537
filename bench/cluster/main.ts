import { makeTempDir } from "#support/temp-dir.ts";
import { benchWrites } from "./api.ts";
import { printFigures } from "./figures.ts";
import { benchJoin } from "./join.ts";
import { benchMerge } from "./merge.ts";
import { benchVisible } from "./visible.ts";

const dir = await makeTempDir("bench-cluster");
try {
  printFigures(await benchWrites(dir.path, 3000));
  printFigures(await benchVisible());
  printFigures(await benchJoin());
  printFigures(benchMerge());
} finally {
  await dir.remove();
}
