import { readdirSync } from "node:fs";
import { join } from "node:path";
import { registry } from "#engine/modules/registry.ts";
import { Matches } from "./cases/expected.ts";
import { readTable, type Table } from "./cases/table.ts";
import type { Sample } from "./sample.ts";

const folder = join(import.meta.dirname, "../modules");

/** The `lab` samples of the modules' tables, for a container or for a virtual machine. */
export function labSamples(on: "container" | "machine"): ReadonlyMap<string, Sample> {
  const files = new Set(readdirSync(folder));
  const samples = [...registry.keys()].flatMap((module) => {
    const file = `${module.replaceAll(/[._]/g, "-")}.yaml`;
    const { lab } = files.has(file) ? readTable(join(folder, file), `test/modules/${file}`) : { lab: [] };
    return lab.flatMap((sample) => ((sample.on ?? "container") === on ? [sampleOf(module, sample)] : []));
  });
  return new Map(samples.map((sample) => [sample.id, sample]));
}

/** The samples in the order of `ids` (separated by commas). @throws Error for an id without a sample, or a sample whose id is missing */
export function inOrder(ids: string, samples: ReadonlyMap<string, Sample>): readonly Sample[] {
  const order = ids.split(",").map((id) => id.trim());
  const forgotten = [...samples.keys()].filter((id) => !order.includes(id));
  if (forgotten.length > 0) throw new Error(`test/lab/catalogue has no place for ${forgotten.join(", ")}`);
  return order.map((id) => {
    const sample = samples.get(id);
    if (sample === undefined) throw new Error(`there is no sample ${id}`);
    return sample;
  });
}

function sampleOf(module: string, given: Table["lab"][number]): Sample {
  const { id, before, drift, ...rest } = given;
  return {
    ...rest,
    id: id === undefined ? module : `${module} ${id}`,
    module,
    ...(before === undefined ? {} : { before: [before].flat().join("") }),
    ...(drift && { drift: { by: drift.by, finds: Object.fromEntries(Object.entries(drift.finds).map(patternOf)) } }),
  } as Sample;
}

function patternOf([fact, value]: [string, string | Matches]): [string, string | RegExp] {
  return [fact, value instanceof Matches ? value.expression : value];
}
