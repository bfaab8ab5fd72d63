// what the theme makes scroll can be reached by keyboard
new MutationObserver(() => {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) wide.tabIndex = 0;
}).observe(document.documentElement, {childList: true, subtree: true});
