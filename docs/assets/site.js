// what the theme makes scroll can be reached by keyboard
new MutationObserver(() => {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) wide.tabIndex = 0;
  // each block of code has its own button
  document.querySelectorAll("nav.md-code__nav").forEach((buttons, at) => buttons.ariaLabel ||= `Code block ${at + 1}`);
}).observe(document.documentElement, {childList: true, subtree: true});
