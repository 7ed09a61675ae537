import { expect } from "chai";
import { createLog } from "#api/log.ts";
import { createControllerLog } from "#controller/log.ts";
import { generateKey } from "#pki/keys.ts";

for (const [name, create] of [
  ["a controller's log", createControllerLog],
  ["an agent's log", createLog],
] as const)
  describe(name, () => {
    const lineOf = (message: string, fields: object): string => {
      let text = "";
      create({ write: (line) => (text += line), clock: () => 0, base: { unit: "u" } }).warn(message, { ...fields });
      return text;
    };

    it("writes one line of JSON: when, how grave, what, and the fields", () => {
      const line = lineOf("a node registered", { node: "n1" });
      expect(line.endsWith("}\n")).to.equal(true);
      expect(JSON.parse(line)).to.deep.equal({
        time: "1970-01-01T00:00:00.000Z",
        level: "warn",
        message: "a node registered",
        unit: "u",
        node: "n1",
      });
    });

    it("S-7: never lets a private key through", () => {
      const key = generateKey().export({ type: "pkcs8", format: "pem" }) as string;
      const body = key.split("\n")[1] ?? "";
      const line = lineOf(`it failed: ${key}`, { reason: key, deep: { error: key } });
      expect(line).not.to.contain(body);
      expect(JSON.parse(line)).to.have.property("level", "warn");
    });
  });
