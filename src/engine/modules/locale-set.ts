import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { fileStepParts } from "../step/fragments/config-file.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { generateLocales, readLocales } from "../step/fragments/locales.ts";
import { sh, shLines } from "../step/sh.ts";

const Locale = z
  .string()
  .regex(
    /^(C|POSIX|C\.UTF-8|[a-z]{2,3}_[A-Z]{2}(\.[A-Za-z0-9-]+)?(@[a-z]+)?)$/,
    "must be a locale such as en_US.UTF-8, C.UTF-8 or de_DE@euro",
  );

const categories = [
  "LC_ADDRESS",
  "LC_COLLATE",
  "LC_CTYPE",
  "LC_IDENTIFICATION",
  "LC_MEASUREMENT",
  "LC_MESSAGES",
  "LC_MONETARY",
  "LC_NAME",
  "LC_NUMERIC",
  "LC_PAPER",
  "LC_TELEPHONE",
  "LC_TIME",
] as const;

const generated = "/etc/locale.gen";

/**
 * ```yaml
 * locale.set: { locale: en_US.UTF-8, categories: { LC_TIME: de_DE.UTF-8 } }
 * ```
 * LANG and the given categories, for sessions that begin after the step, in /etc/default/locale, or in /etc/locale.conf
 * if the system uses that file (locale.conf(5)). LC_ALL, which would override them, is removed from the file. A missing
 * locale is generated (/etc/locale.gen, locale-gen(8)).
 */
export const localeSet = defineModule({
  name: "locale.set",
  summary: "Keeps the node's locale, and locales generated.",
  alsoKnownAs: ["locale_gen", "locale.present", "locale.system", "server.locale"],
  args: z.strictObject({
    locale: Locale.describe("LANG, such as en_US.UTF-8."),
    categories: z
      .partialRecord(z.enum(categories), Locale)
      .default({})
      .describe("Locales of single categories, such as LC_TIME; others are not managed."),
    locales: z.array(Locale).default([]).describe("More locales to be generated."),
  }),
  refusals: ["LOCALE_UNKNOWN", "TOOL_MISSING", ...fileRefusals],
  step: ({ locale, categories: given, locales }) => {
    const values = Object.entries({ LANG: locale, ...given });
    const names = [...values.map(([name]) => name), "LC_ALL"];
    const needed = [...new Set([...values.map(([, value]) => value), ...locales])].filter(
      (name) => name !== "C" && name !== "POSIX",
    );
    // The node determines which of the two files it uses, so dry runs count both.
    const { resources, keep } = fileStepParts(["/etc/default/locale", "/etc/locale.conf", generated]);
    const readState = readLocales(needed);
    return {
      effects: { writes: resources, reads: [...resources, { is: "packages" }] },
      want: {
        ...Object.fromEntries(values),
        LC_ALL: "unset",
        ...(needed.length > 0 ? { generated: needed.join(" ") } : {}),
      },
      probe: sh`${readState}
${shLines(
  names.map(
    (name) => sh`value=$(sed -n ${`s/^[[:blank:]]*${name}=//p`} "$file" 2>/dev/null | tail -n 1)
value=\${value#[\'\"]} value=\${value%[\'\"]}
fact ${name} "\${value:-unset}"`,
  ),
)}fact generated "\${there:-none}"`,
      guard: sh`${readState}
guard_file "$file"
for name in $missing; do
  not_nixos ${generated}
  have locale-gen || unsure || refuse TOOL_MISSING "locale-gen, which makes $name, is not on this node (package locales)"
  grep -qs "^$(printf %s "$name" | sed 's/[.]/[.]/g') " "$supported" || unsure ||
    refuse LOCALE_UNKNOWN "there is no locale $name$K_NL$(grep -s "^\${name%%[.@]*}" "$supported" || grep -s "^\${name%%_*}_" "$supported")"
done`,
      keep,
      foresee: sh`${readState}
foresee_place "$file" 8 1 - -`,
      apply: sh`${readState}
${generateLocales(generated)}
{
  [ ! -f "$file" ] || grep -vE ${`^[[:blank:]]*(${names.join("|")})=`} "$file"
  printf '%s\n' ${values.map((pair) => pair.join("="))}
} >"$K_TMP/locale"
cmp -s "$K_TMP/locale" "$file" || { parent_of "$file" 1 && put_file "$K_TMP/locale" "$file" - - -; }`,
      timeout: 600,
    };
  },
});
