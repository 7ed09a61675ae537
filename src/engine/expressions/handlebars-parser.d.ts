// Only the parser of Handlebars is used; its types cover the whole package, not these files of it.
declare module "handlebars/dist/cjs/handlebars/compiler/base.js" {
  export function parse(text: string): unknown;
}

declare module "handlebars/dist/cjs/handlebars/compiler/parser.js" {
  const parser: {
    readonly symbols_: { readonly SEP: number; readonly NUMBER: number; readonly ID: number };
    /** Gives the number of the next token, whose text is `yytext` then. */
    readonly lexer: { lex: () => number; readonly yytext: string };
  };
  export default parser;
}
