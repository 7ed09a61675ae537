import { expect } from "chai";
import { z } from "zod";
import { listArguments } from "#cli/modules/arguments.ts";
import { mapInner, schemaOf, type JsonSchema } from "#cli/modules/json-schema.ts";
import { registry } from "#engine/modules/registry.ts";

interface Place {
  readonly path: string;
  readonly schema: JsonSchema;
}

/** Every nested schema, in each branch of unions, with its path. */
function placesOf(schema: JsonSchema, path: string): readonly Place[] {
  const inner: Place[] = [];
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    inner.push(...placesOf(property, `${path}.${name}`));
  mapInner({ ...schema, properties: {} }, (other) => {
    inner.push(...placesOf(other, path));
    return other;
  });
  return [{ path, schema }, ...inner];
}

/** Fields without a description, and maps with a field that no example shows. */
function undocumentedIn(args: z.ZodType, name: string): readonly string[] {
  const places = placesOf(schemaOf(args), name);
  const fields = places.flatMap(({ path, schema: { properties = {} } }) =>
    Object.entries(properties).flatMap(([key, { description }]) => (description ? [] : [`${path}.${key}`])),
  );
  const maps = places.flatMap(({ path, schema: { properties, examples = [] } }) => {
    // The module's comment has the example of all arguments.
    if (!properties || path === name) return [];
    const shown = new Set(examples.flatMap((example) => Object.keys(example as object)));
    return Object.keys(properties).flatMap((key) => (shown.has(key) ? [] : [`${path} has no example with ${key}`]));
  });
  return [...new Set([...fields, ...maps])];
}

/** Maps with examples that the schema refuses; zod decides, since JSON Schema lacks some rules. */
function wrongExamples(schema: z.ZodType): readonly string[] {
  const wrong: string[] = [];
  z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema }) => {
      const one = zodSchema as unknown as z.ZodType;
      const examples = z.globalRegistry.get(one)?.["examples"] as unknown[] | undefined;
      for (const example of examples ?? []) {
        // In a list's map, an example is one item of the list.
        const fits = [example, [example]].some((value) => one.safeParse(value).success);
        if (!fits) wrong.push(JSON.stringify(example));
      }
    },
  });
  return wrong;
}

describe("the arguments of every module", () => {
  for (const [name, load] of registry)
    it(`${name} has a description and an example of each field at every depth`, async () => {
      const { args } = await load();
      expect(undocumentedIn(args, name)).to.deep.equal([]);
      expect(wrongExamples(args)).to.deep.equal([]);
    });

  it("fail this check without descriptions or with wrong examples", () => {
    const Inner = z.strictObject({ described: z.string().describe("D."), bare: z.string() });
    const args = z.strictObject({
      list: z.array(Inner).describe("A list."),
      union: z.union([z.string(), Inner.meta({ examples: [{ described: 1, bare: "" }] })]).describe("One of both."),
    });
    expect(undocumentedIn(args, "m")).to.deep.equal([
      "m.list.bare",
      "m.union.bare",
      "m.list has no example with described",
      "m.list has no example with bare",
    ]);
    expect(wrongExamples(args)).to.deep.equal(['{"described":1,"bare":""}']);
  });
});

describe("the documented arguments of a module", () => {
  it("include those of nested maps, lists of maps and unions, with defaults also below transforms", async () => {
    const Inner = z
      .strictObject({ port: z.int().default(80).describe("A port.") })
      .meta({ examples: [{ port: 443 }] })
      .transform(({ port }) => port);
    const args = z.strictObject({ at: z.union([z.string(), z.array(Inner)]).describe("Where.") });
    expect(listArguments({ args })).to.deep.equal([
      {
        name: "at",
        type: "string | list of maps",
        required: true,
        description: "Where.",
        arguments: [{ name: "port", type: "integer", required: false, default: 80, description: "A port." }],
        examples: [{ port: 443 }],
      },
    ]);
    const checks = listArguments((await registry.get("fact.assert")?.()) ?? { args })[0]?.arguments ?? [];
    expect(checks.map(({ name }) => name)).to.include.members(["os", "freeSpace", "portFree", "tcp", "when"]);
    expect(checks.find(({ name }) => name === "clock")?.arguments?.map((one) => one.default)).to.deep.equal([
      undefined,
      300,
      5,
    ]);
  });
});
