import type { Command } from "commander";
import { usageError } from "#errors/problem.ts";

/**
 * Lets flags that stand before the subcommand count as if they stood after it: `kcore -s A get nodes -s B` asks A, then
 * B. What the subcommand has no use for is refused, so that no flag is without effect.
 * @throws KcoreError USAGE
 */
export function inheritOptions(command: Command): void {
  for (let above = command.parent; above; above = above.parent)
    for (const option of above.options) {
      const name = option.attributeName();
      // `--debug` is looked for in all words, whatever the command.
      if (above.getOptionValueSource(name) !== "cli" || name === "debug") continue;
      if (!command.options.some((own) => own.attributeName() === name))
        throw usageError(
          `${pathOf(command)} has no use for ${option.long ?? option.flags}`,
          `${pathOf(command)} --help`,
        );
      const given: unknown = above.getOptionValue(name);
      const own: unknown = command.getOptionValueSource(name) === "cli" ? command.getOptionValue(name) : undefined;
      const value =
        Array.isArray(given) && Array.isArray(own) ? [...(given as unknown[]), ...(own as unknown[])] : (own ?? given);
      command.setOptionValueWithSource(name, value, "cli");
    }
}

/** `kcore get nodes`. */
export function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}
