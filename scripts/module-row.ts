/** The row of docs/modules.md for a module. */
import { z } from "zod";
import type { ModuleDefinition } from "../src/engine/step/define.ts";

export function moduleRow({ name, summary, args }: ModuleDefinition): string {
  const { properties = {}, required = [] } = z.toJSONSchema(args, { io: "input", unrepresentable: "any" });
  const words = Object.keys(properties).map((key) => (required.includes(key) ? `**\`${key}\`**` : `\`${key}\``));
  return `| ${name} | ${summary} | ${words.join(" ")} |`;
}
